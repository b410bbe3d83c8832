"""What the commands need beyond the tasks: the terminal, files, Airflow on this machine, the demo, the doctor."""
