# Where Python packages lie that bring CUDA libraries (nvidia-nccl-cu13,
# nvidia-cublas, nvidia-cudnn-cu13, ...), which a machine with PyTorch has.
#
# libddp_python_sites(OUT) lists site-packages folders, best first: those
# given in LIBDDP_PYTHON_SITE; of the active virtual or conda environment; of
# the environment that tests/run.sh makes; of python3 on PATH.
include_guard()

function(libddp_python_sites out)
  set(sites ${LIBDDP_PYTHON_SITE} $ENV{LIBDDP_PYTHON_SITE})
  foreach(root $ENV{VIRTUAL_ENV} $ENV{CONDA_PREFIX}
               ${CMAKE_SOURCE_DIR}/build/venv)
    file(GLOB found ${root}/lib/python3*/site-packages)
    list(APPEND sites ${found})
  endforeach()
  find_program(LIBDDP_SITE_PYTHON NAMES python3 python
               DOC "Python that is asked where its packages lie")
  mark_as_advanced(LIBDDP_SITE_PYTHON)
  if(LIBDDP_SITE_PYTHON)
    execute_process(
      COMMAND ${LIBDDP_SITE_PYTHON} -c
        "import site; print(';'.join(site.getsitepackages() + [site.getusersitepackages()]))"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND sites ${found})
  endif()
  list(REMOVE_DUPLICATES sites)
  set(${out} ${sites} PARENT_SCOPE)
endfunction()
