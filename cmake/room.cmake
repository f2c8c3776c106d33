# Rooms: a folder of sources is a static library that names what it stands on.
# SPDX-License-Identifier: MIT

# plumbline_room(PATH [NEEDS room...] [LINKS library...] [SOURCES file...])
# Makes plumbline_<path> of the sources, with an underscore for each slash; plumbline::<path> is the same.
# NEEDS: rooms whose headers this one may include, and with them all that they need. tests/rooms.sh holds every
# include to that list. LINKS: libraries that its sources call; no other room sees their headers.
function(plumbline_room path)
  cmake_parse_arguments(room "" "" "NEEDS;LINKS;SOURCES" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  set(needs ${room_NEEDS})
  list(TRANSFORM needs REPLACE "/" "_")
  list(TRANSFORM needs PREPEND "plumbline::")
  if(room_SOURCES)
    add_library(plumbline_${name} STATIC ${room_SOURCES})
    target_link_libraries(plumbline_${name} PUBLIC plumbline_headers ${needs} PRIVATE ${room_LINKS})
    if(PLUMBLINE_FUZZ AND path MATCHES "^(base|models|schedules|sim)")  # what fuzz targets read with tells its way
      target_compile_options(plumbline_${name} PRIVATE -fsanitize=fuzzer-no-link)
      target_link_options(plumbline_${name} INTERFACE -fsanitize=fuzzer-no-link)
    endif()
  else()
    add_library(plumbline_${name} INTERFACE)
    target_link_libraries(plumbline_${name} INTERFACE plumbline_headers ${needs})
  endif()
  add_library(plumbline::${name} ALIAS plumbline_${name})
  set_property(GLOBAL APPEND PROPERTY PLUMBLINE_ROOMS plumbline_${name})
endfunction()
