#!/bin/sh
# Does what `baton test --as-server` asks of a client, with the client commands. $BATON is the binary.
set -e
export A2ACLI_BEARER="$A2A_BEARER_TOKEN" A2ACLI_AGENT_CARD="$A2A_CARD_URL" A2ACLI_A2A_VERSION="$A2A_GENERATION"
export A2ACLI_POLL_INTERVAL=100ms A2ACLI_TIMEOUT=20s
# Kept apart: a key that the card has no place for is refused.
if [ -n "$A2A_API_KEY" ]; then export A2ACLI_API_KEY="$A2A_API_KEY"; fi
field() { printf '%s\n' "$2" | sed -n "s/^$1: //p" | head -n 1; }

case "$A2A_DO" in
send) "$BATON" send "hello" ;;
stream | follow) "$BATON" send "hello" --stream ;;
talk)
    said=$("$BATON" send "hello")
    printf '%s\n' "$said"
    if [ "$(field State "$said")" = TASK_STATE_INPUT_REQUIRED ]; then
        "$BATON" send "more" --task-id="$(field Task "$said")"
    fi
    ;;
get)
    said=$("$BATON" send "hello")
    printf '%s\n' "$said"
    "$BATON" task get -- "$(field Task "$said")"
    ;;
tour)
    said=$("$BATON" send "hello" --async)
    printf '%s\n' "$said"
    task=$(field Task "$said")
    "$BATON" task get -- "$task"
    # Of the older ones, only HTTP+JSON of 0.3 has lists.
    case "$A2A_GENERATION-$A2A_BINDING" in
    1.0-* | 0.3-rest) "$BATON" task list --page-size 2 --all ;;
    esac
    if [ "$A2A_GENERATION" != 0.1 ]; then
        made=$("$BATON" task push-config create "$task" --url https://hook.example/in)
        "$BATON" task push-config get "$task" "$(field "Push config" "$made")"
        "$BATON" task push-config list "$task"
        "$BATON" task push-config delete "$task" "$(field "Push config" "$made")"
    fi
    "$BATON" task cancel -- "$task"
    ;;
extended-card) "$BATON" card get --extended ;;
esac
