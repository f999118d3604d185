import { describe, expect, it } from 'vitest';
import { macro } from '#shared/contracts/documents/macro.ts';
import { expandMacros } from './expand-macros.ts';

const documents = (values: Record<string, string>) => ({
  macros: Object.entries(values).map(([id, value]) => macro.parse({ id, version: 1, value })),
  variable_sets: [],
});

describe('rule 94: macros', () => {
  it('that name each other, or themselves, are expanded once', () => {
    const circle = documents({ a: 'A ${b}', b: 'B ${a} ${b}' });

    expect(expandMacros('${a}, ${b}', circle)).toBe('A ${b}, B ${a} ${b}');
  });

  it('end at an escape, and leave what is no macro', () => {
    expect(expandMacros('$${a} ${a} ${nothing} $a {a} ${a b}', documents({ a: '$${a}' }))).toBe('${a} $${a} ${nothing} $a {a} ${a b}');
  });

  it('do not read patterns of replacements in a value', () => {
    expect(expandMacros('1 ${a} 2', documents({ a: "$& $1 $` $'" }))).toBe("1 $& $1 $` $' 2");
  });
});
