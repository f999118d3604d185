import { z } from 'zod';
import { type Glossary, glossary } from '../contracts/documents/glossary.ts';
import { type Macro, macro } from '../contracts/documents/macro.ts';
import { type Policy, policy } from '../contracts/documents/policy.ts';
import { type Prompt, prompt } from '../contracts/documents/prompt.ts';
import { type Routine, routine } from '../contracts/documents/routine.ts';
import { type VariableSet, variableSet } from '../contracts/documents/variable-set.ts';
import { type Manifest, manifest } from '../contracts/manifest/manifest.ts';
import { contentHash } from './content-hash.ts';

/** The documents that a manifest refers to, directly or through others; each list sorted by id and version. */
export interface Documents {
  prompts: Prompt[];
  routines: Routine[];
  policies: Policy[];
  glossaries: Glossary[];
  macros: Macro[];
  variable_sets: VariableSet[];
}

/** The agent's configuration without secrets: credentials stay references. */
export interface BundleBody {
  manifest: Manifest;
  documents: Documents;
}

export const bundleBody = z.strictObject({
  manifest,
  documents: z.strictObject({
    prompts: z.array(prompt),
    routines: z.array(routine),
    policies: z.array(policy),
    glossaries: z.array(glossary),
    macros: z.array(macro),
    variable_sets: z.array(variableSet),
  }),
});

/** As `contentHash`. */
export function hashOf(body: BundleBody): string {
  return contentHash(body);
}
