"""Writes model.safetensors: a small GPT-2 with its gradients, from PyTorch.

    python torch_reference.py          (needs torch and safetensors)

Weights are bfloat16, so both precisions of the model start from the same
numbers; the loss and all gradients are computed in float64 and stored as
float32. Names: weight/NAME, gradient/NAME, tokens, targets, loss.
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY, BATCH = 2, 32, 2, 16, 64, 3


def shapes():
    yield "wte.weight", (VOCABULARY, WIDTH)
    yield "wpe.weight", (TOKENS, WIDTH)
    for layer in range(LAYERS):
        h = f"h.{layer}."
        for norm in ("ln_1", "ln_2"):
            yield h + norm + ".weight", (WIDTH,)
            yield h + norm + ".bias", (WIDTH,)
        for name, rows, columns in (
            ("attn.c_attn", 1, 3),
            ("attn.c_proj", 1, 1),
            ("mlp.c_fc", 1, 4),
            ("mlp.c_proj", 4, 1),
        ):
            yield h + name + ".weight", (rows * WIDTH, columns * WIDTH)
            yield h + name + ".bias", (columns * WIDTH,)
    yield "ln_f.weight", (WIDTH,)
    yield "ln_f.bias", (WIDTH,)


def forward(p, tokens, targets):
    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"])

    def linear(x, name):
        return x @ p[name + ".weight"] + p[name + ".bias"]

    x = p["wte.weight"][tokens] + p["wpe.weight"]
    for layer in range(LAYERS):
        h = f"h.{layer}."
        q, k, v = (
            y.view(BATCH, TOKENS, HEADS, -1).transpose(1, 2)
            for y in linear(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        a = a.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH)
        x = x + linear(a, h + "attn.c_proj")
        m = F.gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh")
        x = x + linear(m, h + "mlp.c_proj")
    logits = norm(x, "ln_f") @ p["wte.weight"].t()
    return F.cross_entropy(
        logits.view(-1, VOCABULARY), targets.view(-1), ignore_index=-1
    )


def main():
    torch.manual_seed(1234)
    weights = {}
    for name, shape in shapes():
        value = torch.randn(shape) * 0.2
        if name.endswith("weight") and len(shape) == 1:
            value += 1
        weights[name] = value.to(torch.bfloat16)
    tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS))
    targets = torch.randint(0, VOCABULARY, (BATCH, TOKENS))
    targets[0, 3] = targets[2, 15] = -1
    p = {n: w.double().requires_grad_() for n, w in weights.items()}
    loss = forward(p, tokens, targets)
    loss.backward()
    tensors = {"loss": loss.detach().float().view(1)}
    tensors["tokens"] = tokens.int()
    tensors["targets"] = targets.int()
    for name, weight in weights.items():
        tensors["weight/" + name] = weight
        tensors["gradient/" + name] = p[name].grad.float()
    save_file(tensors, pathlib.Path(__file__).parent / "model.safetensors")
    print("loss", loss.item())


main()
