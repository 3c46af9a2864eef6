"""Tables: compare, check, the saved model, and what is said of them."""
