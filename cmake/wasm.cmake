# What predicts, as a WebAssembly module: no command, no real runs, no tests. Its libraries are those that scripts/wasm has
# made in build/wasm-libraries: two archives, the rest headers.
# SPDX-License-Identifier: MIT
set(PLUMBLINE_WASM_LIBRARIES ${PROJECT_SOURCE_DIR}/build/wasm-libraries CACHE PATH "libraries that Emscripten compiled")
if(NOT EXISTS ${PLUMBLINE_WASM_LIBRARIES}/done)
  message(FATAL_ERROR "${PLUMBLINE_WASM_LIBRARIES} is not there: scripts/wasm makes it")
endif()
foreach(headers IN ITEMS fmt::fmt Boost::headers nlohmann_json::nlohmann_json)
  add_library(${headers} INTERFACE IMPORTED)
  target_include_directories(${headers} INTERFACE ${PLUMBLINE_WASM_LIBRARIES}/include)
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
foreach(archive IN ITEMS yaml-cpp ZLIB::ZLIB)
  add_library(${archive} STATIC IMPORTED)
  target_include_directories(${archive} INTERFACE ${PLUMBLINE_WASM_LIBRARIES}/include)
endforeach()
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${PLUMBLINE_WASM_LIBRARIES}/lib/libyaml-cpp.a)
set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION ${PLUMBLINE_WASM_LIBRARIES}/lib/libz.a)
add_library(Threads::Threads INTERFACE IMPORTED)
set(PLUMBLINE_TOML_INCLUDE ${PLUMBLINE_WASM_LIBRARIES}/include)
set(plumbline_fmt fmt::fmt)
set(plumbline_yaml yaml-cpp)

foreach(room IN LISTS plumbline_rooms_that_predict)
  add_subdirectory(${room})
endforeach()
add_subdirectory(wasm)
add_subdirectory(lesson packing)

# What a question spends its time in is built for speed, all the rest for size.
foreach(room IN ITEMS sim_engine sim_graph schedules_order)
  target_compile_options(plumbline_${room} PRIVATE -O2)
endforeach()
