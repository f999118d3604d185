import type { Documents } from '#shared/config/bundle-body.ts';
import { MACRO_REFERENCE } from '#shared/contracts/documents/macro.ts';
import { noValues, type VariableValues } from './variables/variable-values.ts';

type MacroDocuments = Pick<Documents, 'macros' | 'variable_sets'>;

/**
 * Replaces `${macro-id}` by the macro's text and `$${` by `${` in a single pass, so expanded text is never expanded again. A variable's macro takes
 * the customer's value, else the variable's default, else its own fallback. Unknown ids stay; the start refuses them.
 */
export function expandMacros(text: string, { macros, variable_sets: sets }: MacroDocuments, values: VariableValues = noValues): string {
  const textOf = (id: string): string | null => {
    const macro = macros.find((one) => one.id === id);
    if (macro === undefined) return null;
    if (macro.variable === null) return macro.value;
    const { set, name, fallback } = macro.variable;
    const given = sets.find((one) => one.id === set)?.variables.find((variable) => variable.name === name)?.default;
    const value = values.get(name) ?? given ?? null;
    if (value === null) return fallback;
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  return text.replaceAll(MACRO_REFERENCE, (written: string, id: string | undefined) => (id === undefined ? '${' : (textOf(id) ?? written)));
}

/** The variables on whose values an expansion depends. */
export function variablesIn(texts: readonly string[], { macros }: Pick<Documents, 'macros'>): string[] {
  const ids = new Set(texts.flatMap((text) => [...text.matchAll(MACRO_REFERENCE)].map(([, id]) => id)));
  return [...new Set(macros.flatMap(({ id, variable }) => (variable !== null && ids.has(id) ? [variable.name] : [])))];
}
