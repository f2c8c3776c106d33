# The CUDA backend, where a toolkit is installed: kernels by nvcc into one fat binary, everything else by the
# host's compiler. Nothing of CUDA is linked: drivers and libraries are found when the program runs.
# SPDX-License-Identifier: MIT

find_program(PLUMBLINE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
if(PLUMBLINE_NVCC)
  get_filename_component(plumbline_nvcc_real ${PLUMBLINE_NVCC} REALPATH)
  get_filename_component(plumbline_toolkit ${plumbline_nvcc_real}/../.. ABSOLUTE)
  execute_process(COMMAND ${PLUMBLINE_NVCC} --version OUTPUT_VARIABLE plumbline_nvcc_says ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)" plumbline_nvcc_release "${plumbline_nvcc_says}")
  set(PLUMBLINE_CUDA_RELEASE ${CMAKE_MATCH_1})
endif()
find_path(PLUMBLINE_CUDA_INCLUDE cuda.h HINTS ${plumbline_toolkit}/include
          ${plumbline_toolkit}/targets/x86_64-linux/include)

# plumbline_cuda_kernels(OUTPUT SOURCE...): OUTPUT is compiled from the sources of the folder, each of which is one module's part.
# Machine code for devices from the A100 (sm_80) to consumer Blackwell (sm_120), as far as nvcc knows them, and PTX from
# which a driver makes it for others. That PTX is of nvcc's version: drivers of an older CUDA take the code alone.
function(plumbline_cuda_kernels output)
  set(all ${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels.cu)
  set(text "")
  set(sources "")
  foreach(source IN LISTS ARGN)
    string(APPEND text "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${source}\"\n")
    list(APPEND sources ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
  execute_process(COMMAND ${PLUMBLINE_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  set(codes "")
  foreach(number IN ITEMS 80 86 89 90 100 120)
    if(known MATCHES "sm_${number}[^0-9]")
      list(APPEND codes -gencode arch=compute_${number},code=sm_${number})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${all} CONTENT "${text}" @ONLY)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_custom_command(OUTPUT ${output}
    COMMAND ${PLUMBLINE_NVCC} -fatbin -std=c++17 -O3 -I ${PROJECT_SOURCE_DIR} -Werror all-warnings
            ${codes} -gencode arch=compute_80,code=compute_80 -o ${output} ${all}
    DEPENDS ${sources} ${headers} ${all} VERBATIM)
endfunction()
