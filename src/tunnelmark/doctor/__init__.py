"""Doctor: finds out whether this machine meets a lab's needs, and how much it carries; measurements are cached."""
