import { declaredVariables as variablesOf } from '#actors/engine/variables/variable-values.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { VariableSet } from '#shared/contracts/documents/variable-set.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { invalidField } from '../plugins/error-reply.ts';

type Variable = VariableSet['variables'][number];

/** By name. Of several with one name the first counts. */
export type DeclaredVariables = ReadonlyMap<string, Variable>;

export function declaredVariables({ body }: Bundle): DeclaredVariables {
  return variablesOf(body.documents);
}

export function noSuchVariable(): SwitchyardError {
  return new SwitchyardError('variable.not_found', 'there is no such variable');
}

const TYPES: Readonly<Record<Variable['type'], string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
};

/** @throws `request.invalid` for a value of another type than the declared one; null is of none */
export function checkType({ type }: Variable, data: unknown): void {
  const given = data === null ? 'null' : Array.isArray(data) ? 'array' : typeof data;
  if (given !== type) throw invalidField('/data', `must be ${TYPES[type]}, as the variable set declares; DELETE removes a value`);
}
