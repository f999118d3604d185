import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable's name. @throws TypeError when the text is not a reference */
export function variableOf(reference: string): string {
  const name = SECRET_REF.exec(reference)?.[1];
  if (name === undefined) throw new TypeError('not a secret reference');
  return name;
}

/** A key that headers carry: without the white space that secrets from files end in. Null when nothing is left. */
export function resolveKey(reference: string, environment: Environment): string | null {
  return resolveSecret(reference, environment)?.trim() || null;
}

/** The value of the variable; null when it is unset or empty. */
export function resolveSecret(reference: string, environment: Environment): string | null {
  const value = environment[variableOf(reference)];
  return value === undefined || value === '' ? null : value;
}
