# Strict warnings for our own targets alone.
function(libddp_warnings target)
  # Designated initialisers leave fields at their defaults on purpose.
  set(cxx -Wall -Wextra -Wshadow -Wnon-virtual-dtor
          -Wno-missing-field-initializers)
  # g++ 12 sees dangling pointers and overflows that are not there once it
  # inlines the standard library (GCC bug 105329), more so under sanitizers.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND cxx -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                    -Wno-maybe-uninitialized)
    if(LIBDDP_SANITIZE)
      list(APPEND cxx -Wno-dangling-pointer)
    endif()
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${cxx}>"
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${LIBDDP_WERROR}>>:-Werror>)
endfunction()
