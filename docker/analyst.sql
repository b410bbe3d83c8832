-- A role that reads the tables and changes nothing, beside a key of the store that can only read:
--   docker compose -f docker/compose.yaml exec -T postgres psql -U postgres -d catalog -v password=… < docker/analyst.sql
--   docker compose -f docker/compose.yaml exec store /garage key create analyst
--   docker compose -f docker/compose.yaml exec store /garage bucket allow --read undertone --key analyst
-- The catalog says where the tables' files are; comments themselves lie in the store. The ledger, whose prompts hold
-- comments, the results and Airflow's own database stay closed: nobody but their owners may connect to them.
create role analyst login password :'password' connection limit 8;
grant connect on database catalog to analyst;
grant usage on schema public to analyst;
grant select on iceberg_tables, iceberg_namespace_properties to analyst;
alter role analyst set default_transaction_read_only = on;
alter role analyst set statement_timeout = '5min';
