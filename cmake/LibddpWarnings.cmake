# Strict warnings for our own targets alone.
function(libddp_warnings target)
  # Designated initialisers leave fields at their defaults on purpose.
  set(cxx -Wall -Wextra -Wshadow -Wnon-virtual-dtor
          -Wno-missing-field-initializers)
  # g++ 12 sees dangling pointers and overflows that are not there once it
  # inlines the standard library, more so under sanitizers.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND LIBDDP_SANITIZE)
    list(APPEND cxx -Wno-maybe-uninitialized -Wno-array-bounds
                    -Wno-stringop-overflow -Wno-restrict -Wno-dangling-pointer)
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${cxx}>"
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${LIBDDP_WERROR}>>:-Werror>)
endfunction()
