# Set-up shared by tests/run.sh and examples/gpt/train.sh; sourced by bash.
#
# Each function looks first and acts only on what is missing, so a second call
# takes no time. ROOT is the root of the project.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/build/venv

# What a build of everything needs, by the names of Debian and Ubuntu.
BUILD_PACKAGES=(build-essential cmake ninja-build pkg-config ccache
  libopenmpi-dev openmpi-bin libgtest-dev libgmock-dev libbenchmark-dev
  libspdlog-dev libcli11-dev nlohmann-json3-dev libasio-dev libxxhash-dev
  libopenblas-dev)
DATA_PACKAGES=(bible-kjv bible-kjv-text)
PYTHON_PACKAGES=(python3 python3-venv)
SLURM_PACKAGES=(slurmd slurmctld slurm-client slurm-wlm-basic-plugins munge
  libpmix-dev iproute2 util-linux)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# as_root COMMAND...: as root, by sudo where need be.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    fail "this needs root, and there is no sudo; run as root: $*"
  fi
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages NAME...: those that are not installed yet.
install_packages() {
  local name missing=()
  if ! have dpkg-query; then
    say "not a Debian or Ubuntu: install by hand what CMake will name"
    return 0
  fi
  for name in "$@"; do
    is_installed "$name" || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# python_packages [OPTION] NAME...: into build/venv, once for each list.
python_packages() {
  local stamp python=/usr/bin/python3
  stamp=$VENV/.have-$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
  [ -e "$stamp" ] && return 0
  # The distribution's Python first: another on PATH may lack its headers.
  [ -x $python ] || python=python3
  [ -x "$VENV/bin/python" ] || "$python" -m venv "$VENV"
  say "installing into build/venv: $*"
  "$VENV/bin/python" -m pip install --quiet "$@" || return 1
  touch "$stamp"
}

# Torch for tests: the build without CUDA where an index has it, since the
# other one brings gigabytes that no test needs.
python_torch() {
  python_packages "torch==2.13.0+cpu" numpy safetensors 2>/dev/null ||
    python_packages torch==2.13.0 numpy safetensors
}

# nvcc's path, also where it is not on PATH; nothing if there is none.
find_nvcc() {
  local place
  for place in "${CUDACXX:-}" "$(command -v nvcc || true)" \
    "${CUDAToolkit_ROOT:-/nonexistent}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    if [ -n "$place" ] && [ -x "$place" ]; then
      echo "$place"
      return 0
    fi
  done
}

gpu_count() {
  { nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU ' || true
}

# The libraries that a toolkit may lack, as wheels beside it: NCCL, cuBLAS, and
# cuDNN for the example's attention. A toolkit or environment that has them
# is left alone.
cuda_libraries() {
  local nvcc=$1 major
  major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if has_header nccl.h "$nvcc" && has_header cublasLt.h "$nvcc"; then
    return 0
  fi
  # Without what these name in turn: compilers and tools of no use here.
  if [ "$major" = 12 ]; then
    python_packages --no-deps nvidia-nccl-cu12==2.28.9 nvidia-cublas-cu12 \
      nvidia-cudnn-cu12 nvidia-cudnn-frontend
  else
    python_packages --no-deps "nvidia-nccl-cu$major==2.28.9" \
      nvidia-cublas==13.1.0.3 "nvidia-cudnn-cu$major" nvidia-cudnn-frontend
  fi
}

# Whether the compiler finds a header in the toolkit, the system or the
# environment that is active.
has_header() {
  local folder toolkit
  toolkit=$(dirname "$(dirname "$(readlink -f "$2")")")
  for folder in "$toolkit" /usr "${NCCL_ROOT:-}" "${CONDA_PREFIX:-}" \
    ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//:/ }}; do
    [ -n "$folder" ] && [ -e "$folder/include/$1" ] && return 0
  done
  [ -n "${VIRTUAL_ENV:-}" ] &&
    ls "$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia/*/include/"$1" \
      >/dev/null 2>&1
}

# configure PRESET [-DNAME=VALUE...]: only if it has not been done so.
configure() {
  local preset=$1 stamp=$ROOT/build/$1/.configured-with
  shift
  if have ninja && [ -z "${CMAKE_GENERATOR:-}" ]; then
    export CMAKE_GENERATOR=Ninja
  fi
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$*" ] &&
    [ "$stamp" -nt "$ROOT/CMakePresets.json" ]; then
    return 0
  fi
  (cd "$ROOT" && cmake --preset "$preset" "$@") || return 1
  printf '%s' "$*" >"$stamp"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  (cd "$ROOT" && cmake --build --preset "$preset" -j "$(nproc)" \
    ${1:+--target "$@"})
}

# The King James Bible, public domain, as one file of bytes.
bible_text() {
  local text=$ROOT/build/data/bible.txt
  if [ ! -s "$text" ]; then
    have bible || fail "no program 'bible'; install bible-kjv"
    mkdir -p "$(dirname "$text")"
    bible -f Gen1:1-Rev22:21 >"$text.part"
    [ "$(wc -c <"$text.part")" = 4404412 ] ||
      fail "$text.part has $(wc -c <"$text.part") bytes, not 4404412"
    mv "$text.part" "$text"
  fi
  echo "$text"
}
