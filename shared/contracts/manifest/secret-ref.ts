import { z } from 'zod';

/** `${VAR_NAME}`: capital letters, digits and underscores, no leading digit. Group 1 is the name. */
export const SECRET_REF = /^\$\{([A-Z_][A-Z0-9_]*)\}$/;

/** A credential field: only a reference is accepted, so that no literal secret is in a document. */
export const secretRef = z.string().regex(SECRET_REF, 'must be a reference like ${VAR_NAME}; literal credentials are not accepted');
