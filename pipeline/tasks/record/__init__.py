"""Record runs, dropped rows and models; replace rows; read the texts of a day. All other families may import it."""
