import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import { providerIdentity } from './router-config.ts';

interface SecretAt {
  /** Within the block. */
  path: readonly PropertyKey[];
  /** `${VARIABLE}`. */
  reference: string;
}

/** The secrets that a provider's block refers to: every text that is a reference, at any depth, whatever the provider's kind. */
export function providerSecrets(block: unknown): SecretAt[] {
  return secretsIn(block, []).filter(({ path: [field] }) => !(String(field) in providerIdentity));
}

function secretsIn(value: unknown, path: readonly PropertyKey[]): SecretAt[] {
  if (typeof value === 'string') return SECRET_REF.test(value) ? [{ path, reference: value }] : [];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, index) => secretsIn(item, [...path, index]));
  return Object.entries(value).flatMap(([name, field]) => secretsIn(field, [...path, name]));
}
