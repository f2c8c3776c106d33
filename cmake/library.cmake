# The libraries that other programs link: each is one archive of all its rooms, in which only names of
# plumbline::v1 are seen. What the rooms call of other libraries is named beside it.
# SPDX-License-Identifier: MIT

# plumbline_names_of(ROOM_LIBRARY ROOMS_VARIABLE OTHERS_VARIABLE): the libraries of all rooms that a room stands on, and
# what else they link.
function(plumbline_names_of library rooms_variable others_variable)
  set(open ${library})
  set(rooms "")
  set(others "")
  while(open)
    list(POP_FRONT open one)
    string(REGEX REPLACE "^plumbline::" "plumbline_" name ${one})
    if(NOT TARGET ${name} OR NOT name MATCHES "^plumbline_")
      list(APPEND others ${one})
    elseif(NOT name IN_LIST rooms)
      list(APPEND rooms ${name})
      get_target_property(links ${name} INTERFACE_LINK_LIBRARIES)
      if(NOT links)
        set(links "")
      endif()
      foreach(link IN LISTS links)
        string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
        list(APPEND open ${link})
      endforeach()
    endif()
  endwhile()
  list(REMOVE_DUPLICATES others)
  set(${rooms_variable} ${rooms} PARENT_SCOPE)
  set(${others_variable} ${others} PARENT_SCOPE)
endfunction()

# plumbline_library(NAME ROOM): lib<NAME>.a of the room and all that it stands on, to be installed. <NAME>_LIBS gets the names
# of the libraries that a program links besides.
function(plumbline_library name room)
  plumbline_names_of(${room} rooms others)
  set(archives "")
  foreach(one IN LISTS rooms)
    get_target_property(type ${one} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives $<TARGET_FILE:${one}>)
    endif()
  endforeach()
  set(libs "")
  foreach(one IN LISTS others)
    if(one MATCHES "\\.a$")  # of a portable build: it goes in, too
      list(APPEND archives ${one})
    elseif(one MATCHES "/lib([^/]*)\\.so[.0-9]*$")
      list(APPEND libs ${CMAKE_MATCH_1})
    elseif(one MATCHES "^(fmt|ZLIB)::(fmt|ZLIB)$|^(yaml-cpp|dl)$")
      string(REGEX REPLACE "^.*::" "" one ${one})
      string(REPLACE ZLIB z one ${one})
      list(APPEND libs ${one})
    elseif(one STREQUAL "Threads::Threads")
      list(APPEND libs pthread)
    elseif(NOT one MATCHES "^(Boost::headers|nlohmann_json::nlohmann_json|fmt::fmt-header-only)$")  # headers only
      message(FATAL_ERROR "lib${name}.a: it is not known how others link '${one}'")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES libs)
  list(TRANSFORM libs PREPEND "-l")  # a name alone would be a target of the program's own project
  set(${name}_LIBS "${libs}" PARENT_SCOPE)

  # Sections of templates are merged here: later, those of two such archives could not be.
  set(archive ${PROJECT_BINARY_DIR}/lib/lib${name}.a)
  set(object ${PROJECT_BINARY_DIR}/lib/${name}.o)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/lib
    COMMAND ${PLUMBLINE_LD} -r --force-group-allocation -o ${object} --whole-archive ${archives}
    COMMAND ${PLUMBLINE_OBJCOPY} --wildcard "--keep-global-symbol=_ZN9plumbline2v1*" "--keep-global-symbol=_ZNK9plumbline2v1*" ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qcs ${archive} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
    DEPENDS ${rooms} ${archives} VERBATIM)
  add_custom_target(${name}_archive ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endfunction()

# plumbline_pkg_config(PACKAGE LIBRARY TEXT): PACKAGE.pc for a library of plumbline_library().
function(plumbline_pkg_config package library text)
  string(REPLACE ";" " " links "${${library}_LIBS}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(includes ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  else()
    file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    set(includes "\${pcfiledir}/${to_prefix}${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lib/${package}.pc @ONLY CONTENT
"libdir=\${pcfiledir}/..
includedir=@includes@

Name: @package@
Description: @text@
Version: @PROJECT_VERSION@
Libs: -L\${libdir} -l@library@ @links@
Cflags: -I\${includedir}
")
  install(FILES ${PROJECT_BINARY_DIR}/lib/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endfunction()

# GNU's linker and objcopy alone make such an archive; a program may link it with any other.
find_program(PLUMBLINE_LD NAMES ld.bfd ld)
find_program(PLUMBLINE_OBJCOPY NAMES objcopy)
if(PLUMBLINE_LD)
  execute_process(COMMAND ${PLUMBLINE_LD} --help OUTPUT_VARIABLE plumbline_ld_help ERROR_QUIET)
endif()
if(NOT plumbline_ld_help MATCHES "--force-group-allocation" OR NOT PLUMBLINE_OBJCOPY)
  message(STATUS "without GNU's ld (2.29 or newer) and objcopy: the libraries for other programs are not made")
  return()
endif()
include(GNUInstallDirs)
plumbline_library(plumbline plumbline_library_predict)
plumbline_library(plumbline_measure plumbline_library_measure)
plumbline_pkg_config(plumbline plumbline "predicts pipeline-parallel training")
plumbline_pkg_config(plumbline-measure plumbline_measure "predicts pipeline-parallel training, and measures it")

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/plumbline)
configure_package_config_file(cmake/plumblineConfig.cmake.in ${PROJECT_BINARY_DIR}/lib/plumblineConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lib/plumblineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lib/plumblineConfig.cmake ${PROJECT_BINARY_DIR}/lib/plumblineConfigVersion.cmake
        DESTINATION ${package} COMPONENT library)
install(DIRECTORY include/plumbline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
