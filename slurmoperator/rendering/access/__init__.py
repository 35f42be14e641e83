"""How daemons are reached, by Services, by TLS where there is a side-car for it, and by Prometheus; and who may reach them."""
