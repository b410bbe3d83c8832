#!/bin/sh
# Makes the secrets of an installation, once: sh docker/secrets.sh /srv/undertone/secrets
# Docker mounts each file into the services that docker/compose.yaml names for it, and into no other. The folder is for
# its owner alone; the files in it can be read by any user, because the services run as different ones.
set -eu
folder=${1:?a folder that does not exist yet, outside the repository}
umask 077
mkdir "$folder"
cd "$folder"
secret() { od -An -vtx1 -N"$1" /dev/urandom | tr -d ' \n'; }

secret 24 > postgres_password
for database in airflow results catalog ledger; do secret 24 > "db_$database"; done

# PostgreSQL's clients look a service up in such a file, so that no address holds a password. What runs Airflow knows
# Airflow's database, what runs tasks knows ours; both know where Celery tells how a task ended.
service() { printf '[%s]\nhost=postgres\ndbname=%s\nuser=%s\npassword=%s\n\n' "$1" "$1" "$1" "$(cat "db_$1")"; }
{ service airflow; service results; } > pg_service_airflow.conf
{ service results; service catalog; service ledger; } > pg_service_undertone.conf

redis=$(secret 24)
printf 'requirepass %s\n' "$redis" > redis.conf
printf 'redis://:%s@redis:6379/0' "$redis" > broker_url

# A key of 32 bytes in URL-safe base64, as Fernet wants it: it encrypts connections, so losing it loses them.
head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' > fernet_key
secret 64 > jwt_secret
secret 32 > api_secret_key
printf '{"admin": "%s"}\n' "$(secret 12)" > users.json

# Losing this key makes every person a new one: user ids are hashed with it, by DAGs and by the command line.
secret 32 > user_key

# What others give out, to be filled in where it is wanted: the keys of a language-model service and of Label Studio, a
# webhook for alerts, and Airflow's connections. An empty file is a secret that is not set.
: > llm_key
: > studio_key
: > alert_url
echo '{}' > connections.json

key=GK$(secret 12) hidden=$(secret 32)
printf 'GARAGE_RPC_SECRET=%s\nGARAGE_DEFAULT_ACCESS_KEY=%s\nGARAGE_DEFAULT_SECRET_KEY=%s\nGARAGE_DEFAULT_BUCKET=undertone\n' \
  "$(secret 32)" "$key" "$hidden" > store.env
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$key" "$hidden" > aws_credentials
chmod 444 -- *
chmod u+w llm_key studio_key alert_url connections.json
