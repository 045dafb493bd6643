#!/usr/bin/env bash
# Says by its exit code whether the server in this container answers. The image holds no HTTP client, so bash speaks
# the few words itself.
#
#   container-health [PORT]      default 8088
set -eu
exec 3<>"/dev/tcp/127.0.0.1/${1:-8088}"
printf 'GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
read -r -t 3 status <&3
[[ $status == 'HTTP/1.1 200 '* ]]
