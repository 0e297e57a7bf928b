"""What a run says at its end: the certificate, what is waived, what failures have in common, the summary, the kit's power."""
