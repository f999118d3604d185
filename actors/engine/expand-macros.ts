import type { Documents } from '#shared/config/bundle-body.ts';
import { MACRO_REFERENCE } from '#shared/contracts/documents/macro.ts';

/**
 * Replaces `${macro-id}` by the macro's text and `$${` by `${` in a single pass, so expanded text is never expanded again. A variable's macro takes
 * the variable's default, else its own fallback: there are no values per customer yet. Unknown ids stay; the start refuses them.
 */
export function expandMacros(text: string, { macros, variable_sets: sets }: Pick<Documents, 'macros' | 'variable_sets'>): string {
  const textOf = (id: string): string | null => {
    const macro = macros.find((one) => one.id === id);
    if (macro === undefined) return null;
    if (macro.variable === null) return macro.value;
    const { set, name, fallback } = macro.variable;
    const value = sets.find((one) => one.id === set)?.variables.find((variable) => variable.name === name)?.default ?? null;
    if (value === null) return fallback;
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  return text.replaceAll(MACRO_REFERENCE, (written: string, id: string | undefined) => (id === undefined ? '${' : (textOf(id) ?? written)));
}
