import { cleanText } from '#shared/clean-text.ts';
import type { Documents } from '#shared/config/bundle-body.ts';
import type { VariableSet } from '#shared/contracts/documents/variable-set.ts';
import type { StepView } from '../step.ts';

type Variable = VariableSet['variables'][number];

/** Stored values that count for a customer, by name of the variable. Defaults of documents are not among them. */
export type VariableValues = ReadonlyMap<string, unknown>;

export const noValues: VariableValues = new Map();

/** Of a value within an instruction, in characters; more is cut off. */
const MAX_INLINE = 500;

/** Of several variables with one name the first counts. */
export function declaredVariables({ variable_sets: sets }: Pick<Documents, 'variable_sets'>): ReadonlyMap<string, Variable> {
  const found = new Map<string, Variable>();
  for (const { variables } of sets) for (const variable of variables) if (!found.has(variable.name)) found.set(variable.name, variable);
  return found;
}

/** The first value counts: of the customer, of its tags in their order, of all customers (rule 90). */
export function valuesFor(
  customerId: string,
  { tags, values }: { tags: readonly string[]; values: readonly { key: string; name: string; data: unknown }[] },
): VariableValues {
  const found = new Map<string, unknown>();
  for (const key of [customerId, ...tags.map((tag) => `tag:${tag}`), 'DEFAULT'])
    for (const value of values) if (value.key === key && !found.has(value.name)) found.set(value.name, value.data);
  return found;
}

/** The variables that models may see. */
export function shownNames(documents: Pick<Documents, 'variable_sets'>): string[] {
  return [...declaredVariables(documents).values()].flatMap(({ name, expose }) => (expose ? [name] : []));
}

/** What models see of the variables (rule 91). One without a value is left out. */
export function shownVariables(documents: Pick<Documents, 'variable_sets'>, values: VariableValues): StepView['variables'] {
  return [...declaredVariables(documents).values()].flatMap(({ name, description, default: given, expose }) => {
    const value = values.has(name) ? values.get(name) : given;
    return expose && value !== null && value !== undefined ? [{ name, description, value }] : [];
  });
}

/** As parts of instructions: cleaned, on one line and short, since customers and integrations set them (rule 94). */
export function inlineValues(values: VariableValues): VariableValues {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? null));
  return new Map([...values].map(([name, value]) => [name, cleanText(cleanText(textOf(value)).replaceAll(/\s+/g, ' ').slice(0, MAX_INLINE))]));
}
