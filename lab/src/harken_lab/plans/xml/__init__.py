"""XPath subscriptions in a database: the tables and plans of Tian et al. (SIGMOD 2004)."""
