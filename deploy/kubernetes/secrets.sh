#!/bin/sh
# Prints the Secrets that the manifests refer to: one for each service, with what that service reads and nothing else, and the passwords of all
# users for the broker. The values are those of a file like the .env of the compose file, and DATABASE_URL and REDIS_URL, which that has not:
#
#   sh deploy/kubernetes/secrets.sh .env | kubectl apply -f -
#
# The file may have these two as well; the environment overrules it. The output has secrets in it: keep it in no repository.
set -eu
file=${1:?'name the file with the values, such as .env'}
[ -r "$file" ] || { echo "$file can't be read" >&2; exit 1; }

# The value of a variable; empty when there is none.
value_of() {
  eval "given=\${$1:-}"
  if [ -n "$given" ]; then printf %s "$given"; else sed -n "s/^$1=//p" "$file" | tail -n 1 | tr -d '\n'; fi
}

# NAME, or NAME=OTHER for the value of another variable. A trailing ? marks one that may be missing.
secret() {
  name=$1
  shift
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n  namespace: switchyard\ntype: Opaque\ndata:\n' "$name"
  for entry in "$@"; do
    key=${entry%%=*} && key=${key%\?}
    from=${entry#*=} && from=${from%\?}
    value=$(value_of "$from")
    if [ -n "$value" ]; then
      printf '  %s: %s\n' "$key" "$(printf %s "$value" | base64 | tr -d '\n')"
    else
      case $entry in *\?) ;; *) echo "$from is missing in $file and in the environment" >&2; exit 1 ;; esac
    fi
  done
}

secrets() {
  secret router-gateway NATS_PASSWORD=NATS_PASSWORD_ROUTER_GATEWAY DATABASE_URL REDIS_URL HOUSE_SECRET ROUTER_API_KEY SHOP_FRONT_KEY ROUTER_MANAGEMENT_KEY \
    PLATFORM_PUBLIC_KEY PLATFORM_SECRET_KEY OTEL_EXPORTER_OTLP_HEADERS?
  secret agent-gateway NATS_PASSWORD=NATS_PASSWORD_AGENT_GATEWAY DATABASE_URL REDIS_URL HOUSE_SECRET AGENT_API_KEY ROUTER_API_KEY \
    OTEL_EXPORTER_OTLP_HEADERS?
  secret actor-host NATS_PASSWORD=NATS_PASSWORD_ACTOR_HOST DATABASE_URL HOUSE_SECRET ROUTER_API_KEY OTEL_EXPORTER_OTLP_HEADERS?
  secret router-worker NATS_PASSWORD=NATS_PASSWORD_ROUTER_WORKER DATABASE_URL REDIS_URL ROUTER_API_KEY SHOP_FRONT_KEY OPENAI_API_KEY \
    OTEL_EXPORTER_OTLP_HEADERS? SMTP_URL?
  secret effect-worker NATS_PASSWORD=NATS_PASSWORD_EFFECT_WORKER DATABASE_URL AGENT_API_KEY OTEL_EXPORTER_OTLP_HEADERS?
  secret streams NATS_PASSWORD=NATS_PASSWORD_OPERATOR
  secret nats NATS_PASSWORD_ROUTER_GATEWAY NATS_PASSWORD_AGENT_GATEWAY NATS_PASSWORD_ACTOR_HOST NATS_PASSWORD_ROUTER_WORKER \
    NATS_PASSWORD_EFFECT_WORKER NATS_PASSWORD_ROUTER NATS_PASSWORD_AGENT NATS_PASSWORD_OPERATOR
}

# All of them or none: half of them would be applied otherwise.
all=$(secrets)
printf '%s\n' "$all"
