import type { BundleBody } from '#shared/config/bundle-body.ts';
import { expandMacros, variablesIn } from './expand-macros.ts';
import { noValues, type VariableValues } from './variables/variable-values.ts';

/**
 * A session's first message, macros expanded; null when there is none or it is blank.
 * @param values of the session's customer
 */
export function greetingOf({ manifest, documents }: BundleBody, values: VariableValues = noValues): string | null {
  const { greeting } = manifest.agent_config.context;
  if (greeting === null) return null;
  const text = expandMacros(greeting, documents, values);
  return text.trim() === '' ? null : text;
}

/** The variables that the greeting names. */
export function greetingVariables({ manifest, documents }: BundleBody): string[] {
  return variablesIn([manifest.agent_config.context.greeting ?? ''], documents);
}
