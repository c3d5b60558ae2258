#!/bin/sh
# Counts up to the number it is sent, one a second; every line is streamed. Cancel it whenever you like.
# baton serve --exec examples/exec/count.sh
read -r last
for n in $(seq 1 "${last:-10}"); do
  echo "$n"
  sleep 1
done
