#!/bin/sh
# Runs services as processes of this machine, without containers (docs/deploy.md). In the root of a built release:
#
#   sh deploy/processes.sh configure .env        writes deployment/<service>.env: what each service reads, and nothing else
#   sh deploy/processes.sh start <service> <management port> [<public port>]
#   sh deploy/processes.sh ready <management port> …        waits until these processes are ready
#   sh deploy/processes.sh stop <service> <management port>   SIGTERM, and waits until the process has drained and ended
#   sh deploy/processes.sh operate <command> …   the command line on the same stores: streams, doctor, dead-letters
#
# `configure` takes NATS_URL, DATABASE_URL, REDIS_URL, MANIFEST and ROUTER_CONFIG from the environment, the secrets and settings from a file like
# deploy/.env.example, and for both gateways HOST (127.0.0.1). A gateway needs a public port, and so does `router`, a gateway and a worker in one process,
# and `agent`, a gateway and a host.
set -eu
umask 077
folder=deployment

fail() { echo "$1" >&2; exit 1; }

# The value of a variable of the file; empty when there is none.
value_of() { sed -n "s/^$1=//p" "$file" | tail -n 1 | tr -d '\n'; }

# The variable of the broker's password for a service.
password_of() { echo "NATS_PASSWORD_$(echo "$1" | tr 'a-z-' 'A-Z_')"; }

# Single quotes, which node --env-file and systemd both take off.
line() { printf "%s='%s'\n" "$1" "$2"; }

# <service> NAME, or NAME=OTHER for the value of another variable. A trailing ? marks one that may be missing.
secrets_of() {
  service=$1 && shift
  for entry in "$@"; do
    from=${entry#*=} && value=$(value_of "${from%\?}") && name=${entry%%=*}
    if [ -n "$value" ]; then line "${name%\?}" "$value"
    else case $entry in *\?) ;; *) fail "$from is missing in $file" ;; esac
    fi
  done > "$new/$service.env"
}

# Earlier files are written over, with their owners and modes, when all new ones are there.
configure() {
  file=${1:?'name the file with the secrets, such as .env'}
  [ -r "$file" ] || fail "$file can't be read"
  new=$folder/new
  rm -rf "$new" && mkdir -p "$new"
  trap 'rm -rf "$new"' EXIT
  {
    for name in NATS_URL DATABASE_URL REDIS_URL MANIFEST ROUTER_CONFIG; do
      eval "value=\${$name:-}"
      [ -n "$value" ] || fail "$name is missing in the environment"
      line "$name" "$value"
    done
    line HOST "${HOST:-127.0.0.1}"
    line MANAGEMENT_HOST "${MANAGEMENT_HOST:-127.0.0.1}"
    # The settings with a default. The mail server's address has a password, and the ports are those of `start`.
    for name in $(sed -n 's/^# \([A-Z_]*\)=.*/\1/p' deploy/.env.example); do
      case $name in SMTP_URL | ROUTER_PORT | AGENT_PORT | PUBLISH_ADDRESS) continue ;; esac
      value=$(value_of "$name")
      [ -z "$value" ] || line "$name" "$value"
    done
  } > "$new/all.env"
  secrets_of router-gateway NATS_PASSWORD=NATS_PASSWORD_ROUTER_GATEWAY HOUSE_SECRET ROUTER_API_KEY SHOP_FRONT_KEY ROUTER_MANAGEMENT_KEY \
    PLATFORM_PUBLIC_KEY PLATFORM_SECRET_KEY
  secrets_of agent-gateway NATS_PASSWORD=NATS_PASSWORD_AGENT_GATEWAY HOUSE_SECRET AGENT_API_KEY ROUTER_API_KEY PLATFORM_PUBLIC_KEY PLATFORM_SECRET_KEY
  secrets_of actor-host NATS_PASSWORD=NATS_PASSWORD_ACTOR_HOST HOUSE_SECRET ROUTER_API_KEY
  secrets_of router-worker NATS_PASSWORD=NATS_PASSWORD_ROUTER_WORKER ROUTER_API_KEY SHOP_FRONT_KEY OPENAI_API_KEY 'SMTP_URL?'
  # Both roles in one process: only with their users of the broker, which a file of an earlier release lacks.
  [ -z "$(value_of NATS_PASSWORD_ROUTER)" ] || secrets_of router NATS_PASSWORD=NATS_PASSWORD_ROUTER HOUSE_SECRET ROUTER_API_KEY SHOP_FRONT_KEY \
    ROUTER_MANAGEMENT_KEY OPENAI_API_KEY PLATFORM_PUBLIC_KEY PLATFORM_SECRET_KEY 'SMTP_URL?'
  [ -z "$(value_of NATS_PASSWORD_AGENT)" ] || secrets_of agent NATS_PASSWORD=NATS_PASSWORD_AGENT HOUSE_SECRET AGENT_API_KEY ROUTER_API_KEY
  secrets_of effect-worker NATS_PASSWORD=NATS_PASSWORD_EFFECT_WORKER AGENT_API_KEY
  secrets_of operator NATS_PASSWORD=NATS_PASSWORD_OPERATOR HOUSE_SECRET
  # Those of a password that has gone would have secrets of before.
  rm -f "$folder/router.env" "$folder/agent.env"
  cp "$new"/*.env "$folder"
}

# The files hold, not what the shell exports: a worker gets no HOUSE_SECRET, and no process another one's password of the broker.
own_settings() {
  for name in $(sed -n 's/^\(# \)\{0,1\}\([A-Z_]*\)=.*/\2/p' deploy/.env.example "$folder"/*.env); do unset "$name"; done
}

# The young generation of a process that each call passes through has its full size from the start (docs/adr/0022).
heap_of() { case $1 in router-gateway | router-worker | router) echo --min-semi-space-size=16 ;; esac }

start() {
  service=$1 port=$2
  [ -r "dist/services/$service/main.js" ] || fail "there is no service $service in dist/: build it, or correct the name"
  [ -r "$folder/$service.env" ] || fail "$folder/$service.env can't be read: \`configure\` writes it from a file with $(password_of "$service")"
  ! is_running "$service" "$port" || fail "$service $port runs already, as process $(cat "$folder/$service-$port.pid")"
  own_settings
  MANAGEMENT_PORT=$port PORT=${3:-} nohup node --env-file="$folder/all.env" --env-file="$folder/$service.env" \
    $(heap_of "$service") "dist/services/$service/main.js" >> "$folder/$service-$port.log" 2>&1 < /dev/null &
  echo $! > "$folder/$service-$port.pid"
}

is_running() { [ -r "$folder/$1-$2.pid" ] && kill -0 "$(cat "$folder/$1-$2.pid")" 2> /dev/null; }

# A process that has ended is named, and is waited for no longer.
ready() {
  for port in "$@"; do
    until curl -sf "http://127.0.0.1:$port/ready" > /dev/null; do
      for pid in "$folder"/*-"$port".pid; do
        kill -0 "$(cat "$pid")" 2> /dev/null || { tail -n 5 "${pid%.pid}.log" >&2; fail "$(basename "$pid" .pid) has ended"; }
      done
      sleep 1
    done
  done
}

stop() {
  is_running "$1" "$2" || fail "$1 $2 does not run"
  kill "$(cat "$folder/$1-$2.pid")"
  while is_running "$1" "$2"; do sleep 1; done
  rm "$folder/$1-$2.pid"
}

operate() { own_settings && node --env-file="$folder/all.env" --env-file="$folder/operator.env" scripts/operator.mjs "$@"; }

case ${1:-} in
  configure | start | ready | stop | operate) "$@" ;;
  *) sed -n 's/^# \{0,1\}//p' "$0" | sed -n '2,9p' >&2; exit 2 ;;
esac
