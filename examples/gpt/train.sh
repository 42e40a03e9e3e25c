#!/usr/bin/env bash
# Trains a GPT on real text: installs what is missing, builds, runs.
#
#   examples/gpt/train.sh [--ranks N] [options of the program]
#
# Default: all GPUs if there are any, else two ranks on the CPU. All other
# options go to the program; --help shows them.
set -euo pipefail
# shellcheck source=../../cmake/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"

ranks='' device='' data='' arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --ranks) ranks=${2:?--ranks needs a number}; shift ;;
    --ranks=*) ranks=${1#*=} ;;
    *)
      arguments+=("$1")
      case $1 in
        --device) device=${2:-} ;;
        --device=*) device=${1#*=} ;;
        --data | --data=* | --help | -h) data=given ;;
      esac
      ;;
  esac
  shift
done
case $ranks in
  *[!0-9]* | 0) fail "--ranks takes a number of at least 1, not '$ranks'" ;;
esac

gpus=$(gpu_count)
nvcc=$(find_nvcc)
preset=cpu
if [ "$device" != cpu ] && [ "$gpus" -gt 0 ]; then
  if [ -n "$nvcc" ]; then
    preset=cuda
  else
    say "there are $gpus GPUs but no nvcc: training on the CPU." \
      "Install a CUDA toolkit >= 12.1 and put nvcc on PATH for the GPUs"
  fi
fi
if [ "$device" = cuda ] && [ $preset = cpu ]; then
  fail "--device cuda needs a GPU (nvidia-smi -L shows $gpus) and nvcc" \
    "(${nvcc:-not found}); leave --device out to train on the CPU"
fi

install_packages "${BUILD_PACKAGES[@]}" "${DATA_PACKAGES[@]}"
if [ $preset = cuda ]; then
  install_packages "${PYTHON_PACKAGES[@]}"
  cuda_libraries "$nvcc"
  : "${ranks:=$gpus}"
fi
: "${ranks:=2}"
configure "$preset"
build "$preset" gpt
program=$ROOT/build/$preset/examples/gpt/gpt
[ -n "$data" ] || arguments+=(--data "$(bible_text)")

# The ranks of this machine share its cores.
threads=$(($(nproc) / ranks))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-$OMP_NUM_THREADS}
if [ "$ranks" = 1 ]; then
  exec "$program" "${arguments[@]}"
fi
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec mpirun -n "$ranks" --oversubscribe --bind-to none \
  "$program" "${arguments[@]}"
