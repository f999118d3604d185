import { z } from 'zod';

/** `${VAR_NAME}`: capital letters, digits and underscores, not starting with a digit. The group is the name. */
export const SECRET_REF = /^\$\{([A-Z_][A-Z0-9_]*)\}$/;

/** A credential field: only `${VAR_NAME}` is taken, so that no literal secret ever stands in a document. */
export const secretRef = z.string().regex(SECRET_REF, 'must be a reference like ${VAR_NAME}; literal credentials are not accepted');
