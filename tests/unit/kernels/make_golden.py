"""Writes golden.h: weights and state after some steps of torch's optimizers.

Run with a Python that has torch; the numbers are committed, so tests do not
need it:  python make_golden.py > golden.h
"""

import torch

STEPS = 20
NUMEL = 11

ADAM = [
    dict(kind="AdamW", lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0),
    dict(kind="AdamW", lr=3e-2, beta1=0.9, beta2=0.95, eps=1e-8, decay=0.1),
    dict(kind="Adam", lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.05),
    dict(kind="AdamW", lr=6e-4, beta1=0.3, beta2=0.99, eps=1e-4, decay=0.01),
    dict(kind="Adam", lr=1e-2, beta1=0.0, beta2=0.9, eps=1e-8, decay=0.0),
]
SGD = [
    dict(lr=0.1, momentum=0.0, dampening=0.0, decay=0.0, nesterov=False),
    dict(lr=0.1, momentum=0.0, dampening=0.0, decay=0.02, nesterov=False),
    dict(lr=0.05, momentum=0.9, dampening=0.0, decay=0.0, nesterov=False),
    dict(lr=0.05, momentum=0.9, dampening=0.3, decay=0.01, nesterov=False),
    dict(lr=0.05, momentum=0.8, dampening=0.0, decay=0.01, nesterov=True),
]


def optimizer(parameter, c):
    if "kind" in c:
        make = getattr(torch.optim, c["kind"])
        return make([parameter], lr=c["lr"], betas=(c["beta1"], c["beta2"]),
                    eps=c["eps"], weight_decay=c["decay"], foreach=False)
    return torch.optim.SGD([parameter], lr=c["lr"], momentum=c["momentum"],
                           dampening=c["dampening"], weight_decay=c["decay"],
                           nesterov=c["nesterov"], foreach=False)


def run(weight, gradients, c, dtype):
    parameter = weight.to(dtype).clone().requires_grad_()
    chosen = optimizer(parameter, c)
    zero = torch.zeros(NUMEL, dtype=dtype)
    weight_reach = parameter.detach().abs()
    moment_reach = zero
    for gradient in gradients:
        parameter.grad = gradient.to(dtype).clone()
        chosen.step()
        state = chosen.state[parameter]
        first = state.get("exp_avg", state.get("momentum_buffer"))
        first = zero if first is None else first
        second = state.get("exp_avg_sq", zero)
        weight_reach = torch.maximum(weight_reach, parameter.detach().abs())
        moment_reach = torch.maximum(moment_reach, first.abs())
    return [parameter.detach(), first, second, weight_reach, moment_reach]


def numbers(tensor):
    return "{" + ", ".join(repr(float(x)) for x in tensor.flatten()) + "}"


def case(c, weight, gradients):
    fields = [c["lr"], c.get("beta1", 0.0), c.get("beta2", 0.0),
              c.get("eps", 0.0), c.get("momentum", 0.0),
              c.get("dampening", 0.0), c["decay"]]
    flags = [c.get("kind") == "AdamW", c.get("nesterov", False)]
    text = ", ".join(repr(x) + "f" for x in fields)
    text += ", " + ", ".join(str(x).lower() for x in flags)
    for dtype in (torch.float32, torch.float64):
        results = run(weight, gradients, c, dtype)
        text += ",\n {" + ",\n  ".join(numbers(r) for r in results) + "}"
    return "{" + text + "}"


def main():
    torch.manual_seed(1)
    weight = torch.randn(NUMEL)
    gradients = torch.randn(STEPS, NUMEL) * torch.logspace(-3, 1, NUMEL)
    print("/// \\file\n/// Written by make_golden.py with torch", torch.__version__)
    print("// clang-format off\n#pragma once\n\nnamespace ddp::test {\n")
    print(f"inline constexpr int kGoldenSteps = {STEPS};")
    print(f"inline constexpr int kGoldenNumel = {NUMEL};\n")
    print("// The reaches are the largest magnitudes on the way: what the "
          "roundings of all\n// steps are relative to.")
    print("struct GoldenState {\n  double weight[kGoldenNumel], "
          "moment1[kGoldenNumel], moment2[kGoldenNumel];\n"
          "  double weight_reach[kGoldenNumel], "
          "moment1_reach[kGoldenNumel];\n};")
    print("struct GoldenCase {\n  float lr, beta1, beta2, eps, momentum, "
          "dampening, weight_decay;\n  bool decoupled, nesterov;\n"
          "  GoldenState single, wide;\n};\n")
    print("inline constexpr double kGoldenWeight[] =", numbers(weight) + ";")
    print("inline constexpr double kGoldenGradients[] =",
          numbers(gradients) + ";")
    for name, cases in (("Adam", ADAM), ("Sgd", SGD)):
        body = ",\n".join(case(c, weight, gradients) for c in cases)
        print(f"inline constexpr GoldenCase kGolden{name}[] = {{\n{body}}};")
    print("\n}  // namespace ddp::test")


if __name__ == "__main__":
    main()
