import { glossary } from '../contracts/documents/glossary.ts';
import { macro } from '../contracts/documents/macro.ts';
import { policy } from '../contracts/documents/policy.ts';
import { prompt } from '../contracts/documents/prompt.ts';
import { variableSet } from '../contracts/documents/variable-set.ts';
import type { Documents } from './bundle-body.ts';
import { checkRoutine } from './check-routine.ts';
import { type Checked, check } from './problems.ts';

export type DocumentKind = keyof Documents;

/** The name of each kind in folders and in addresses. */
export const documentFolders = {
  prompts: 'prompts',
  routines: 'routines',
  policies: 'policies',
  glossaries: 'glossaries',
  macros: 'macros',
  variable_sets: 'variable-sets',
} as const satisfies Record<DocumentKind, string>;

/** The check of one document by itself, without what it refers to. */
export const documentChecks: { readonly [Kind in DocumentKind]: (value: unknown) => Checked<Documents[Kind][number]> } = {
  prompts: (value) => check(prompt, value),
  routines: checkRoutine,
  policies: (value) => check(policy, value),
  glossaries: (value) => check(glossary, value),
  macros: (value) => check(macro, value),
  variable_sets: (value) => check(variableSet, value),
};
