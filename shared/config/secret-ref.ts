import { z } from 'zod';

const SECRET_REF = /^\$\{([A-Z_][A-Z0-9_]*)\}$/;

/** A credential field: only `${VAR_NAME}` is taken, so that no literal secret ever stands in a document. */
export const secretRef = z.string().regex(SECRET_REF, 'must be a reference like ${VAR_NAME}; literal credentials are not accepted');

/** Process environment, or a part of it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable's name. @throws on a text that is not a reference: parse first */
export function variableOf(reference: string): string {
  const name = SECRET_REF.exec(reference)?.[1];
  if (name === undefined) throw new TypeError('not a secret reference');
  return name;
}

/** The value a reference stands for; null when the variable is unset or empty. */
export function resolveSecret(reference: string, environment: Environment): string | null {
  const value = environment[variableOf(reference)];
  return value === undefined || value === '' ? null : value;
}
