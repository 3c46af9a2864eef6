"""Files of any format become cells, vectors and judgements."""
