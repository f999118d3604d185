import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';

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
