"""Random stencils between guard pages: what is accepted stays inside, what is refused would not."""
