import { type Policy, policy } from '#shared/contracts/documents/policy.ts';

/** For tests. Observations: `action: null`. */
export function testPolicy(id: string, fields: Partial<Policy> = {}): Policy {
  return policy.parse({ id, version: 1, condition: `${id} holds`, action: `do ${id}`, ...fields });
}
