# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C file that holds every page of FOLDER (Markdown) for `snug help TOPIC`.
#   cmake -DFOLDER=docs/howto -DOUT=topics.c -P tools/topics.cmake
# A page begins with "# Title"; a line "<!-- words: ... -->" holds more words to find it by.
file(GLOB pages ${FOLDER}/*.md)
list(SORT pages)
set(bodies "")
set(rows "")
set(n 0)
foreach(page ${pages})
  get_filename_component(slug ${page} NAME_WE)
  if(slug STREQUAL "README")
    continue()
  endif()
  file(READ ${page} text)
  string(REGEX MATCH "^# ([^\n]*)" unused "${text}")
  set(title "${CMAKE_MATCH_1}")
  set(words "")
  if(text MATCHES "<!-- words: ([^\n]*) -->")
    set(words "${CMAKE_MATCH_1}")
  endif()
  foreach(name title words)
    string(REPLACE "\\" "\\\\" ${name} "${${name}}")
    string(REPLACE "\"" "\\\"" ${name} "${${name}}")
  endforeach()
  file(READ ${page} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND bodies "static const char page_${n}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${slug}\", \"${title}\", \"${words}\", page_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by tools/topics.cmake from docs/howto. */\n#include \"topics.h\"\n\n"
  "${bodies}\nconst sn_cli_topic sn_cli_topics[] = {\n${rows}    {NULL, NULL, NULL, NULL}};\n"
  "const size_t sn_cli_n_topics = ${n};\n")
