#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests that this machine can.
#
#   tests/run.sh [--quick] [--only cpu|cuda|asan|tsan]
#
# --quick leaves out the sanitizers. Ends with the line "N passed, N failed".
set -euo pipefail
# shellcheck source=../cmake/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

presets=(cpu cuda asan tsan)
while [ $# -gt 0 ]; do
  case $1 in
    --quick) presets=(cpu cuda) ;;
    --only) presets=("${2:?--only needs a preset}"); shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "unknown option $1; see $0 --help" ;;
  esac
  shift
done

passed=0 failed=0 broken=()

# Runs the tests of a preset and adds up what ctest says.
run_tests() {
  local preset=$1 log=$ROOT/build/$1/tests.log all bad runner=()
  say "$preset: tests"
  # The sanitizers' maps of memory do not bear much randomness.
  if [ "$preset" != cpu ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    runner=(setarch "$(uname -m)" -R)
  fi
  (cd "$ROOT" && "${runner[@]}" ctest --preset "$preset" -j "$(nproc)") 2>&1 |
    tee "$log" || true
  all=$(sed -n 's/.* tests failed out of \([0-9]*\).*/\1/p' "$log")
  bad=$(sed -n 's/.* \([0-9]*\) tests failed out of .*/\1/p' "$log")
  if [ -z "$all" ]; then
    broken+=("$preset: no test ran, see $log")
    return
  fi
  passed=$((passed + all - bad))
  failed=$((failed + bad))
}

# Builds a preset, and tests it unless told that compiling is the test.
check() {
  local preset=$1 test=$2
  shift 2
  say "$preset: build"
  if ! configure "$preset" "-DLIBDDP_TEST_PYTHON=$VENV/bin/python" ||
    ! build "$preset" "$@"; then
    broken+=("$preset: the build failed")
  elif [ "$test" = test ]; then
    run_tests "$preset"
  else
    passed=$((passed + 1))
  fi
}

check_cuda() {
  local nvcc
  nvcc=$(find_nvcc)
  if [ -z "$nvcc" ]; then
    say "cuda: left out, there is no nvcc. Install a CUDA toolkit >= 12.1" \
      "and put nvcc on PATH, or name it in CUDAToolkit_ROOT"
    return
  fi
  cuda_libraries "$nvcc"
  if [ "$(gpu_count)" -gt 0 ]; then
    check cuda test
  else
    say "cuda: no GPU here, so the sources are compiled and not run"
    check cuda compile libddp gpt libddp_gpu_tests
  fi
}

install_packages "${BUILD_PACKAGES[@]}" "${DATA_PACKAGES[@]}" \
  "${PYTHON_PACKAGES[@]}" "${SLURM_PACKAGES[@]}"
python_torch
bible_text >/dev/null
for preset in "${presets[@]}"; do
  case $preset in
    cpu | asan | tsan) check "$preset" test ;;
    cuda) check_cuda ;;
    *) fail "unknown preset $preset: cpu, cuda, asan or tsan" ;;
  esac
done

for line in "${broken[@]}"; do
  printf 'error: %s\n' "$line"
done
failed=$((failed + ${#broken[@]}))
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
