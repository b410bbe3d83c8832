#!/bin/sh
# Run by PostgreSQL's image when the volume is new: a database for each purpose, each owned by a role of its own that
# can connect to nothing else. Passwords go by standard input, where no list of processes shows them.
set -eu
for name in airflow results catalog ledger; do
  psql --set ON_ERROR_STOP=1 --quiet --username "${POSTGRES_USER:-postgres}" --dbname postgres <<SQL
create role $name login password '$(cat "${SECRETS:-/run/secrets}/db_$name")';
create database $name owner $name;
revoke all on database $name from public;
\connect $name
revoke all on schema public from public;
alter schema public owner to $name;
SQL
done
