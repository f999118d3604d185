import { documentReference } from '../contracts/documents/document.ts';
import { type DocumentKind, documentFolders } from './document-kinds.ts';
import type { DocumentAddress } from './document-rows.ts';
import type { RawDocument, RawDocuments } from './document-source.ts';
import type { ManifestOutline, Reference } from './manifest-outline.ts';
import { tolerantObject } from './tolerant.ts';

/** Null: there is none. */
export type ReadDocument = (address: DocumentAddress) => Promise<RawDocument | null>;

/** The documents that the manifest refers to, and those that they refer to, as far as they exist; invalid references are left out. */
export async function readReferenced({ context, search }: ManifestOutline, read: ReadDocument): Promise<RawDocuments> {
  const all = async (kind: DocumentKind, references: readonly Reference[] | null): Promise<RawDocument[]> => {
    const found = await Promise.all(addressesOf(kind, references ?? []).map(read));
    return found.filter((one) => one !== null);
  };
  const [routines, policies, glossaries, macros, variableSets] = await Promise.all([
    all('routines', context.routines),
    all('policies', context.policies),
    all('glossaries', context.glossaries),
    all('macros', context.macros),
    all('variable_sets', context.variables),
  ]);
  const prompts = await all('prompts', [context.system_prompt, search?.prompt ?? null, ...routines.map(instructionsOf)]);
  return { prompts, routines, policies, glossaries, macros, variable_sets: variableSets };
}

const withInstructions = tolerantObject({ instructions: documentReference.nullable().catch(null) });

/** The prompt of a routine; null: it has none. */
function instructionsOf({ value }: RawDocument): Reference {
  return withInstructions.parse(value)?.instructions ?? null;
}

/** Each once. */
function addressesOf(kind: DocumentKind, references: readonly Reference[]): DocumentAddress[] {
  const addresses = references.flatMap((reference) => {
    const valid = documentReference.safeParse(reference).data;
    return valid === undefined ? [] : [{ kind: documentFolders[kind], ...valid }];
  });
  return [...new Map(addresses.map((address) => [`${address.id} ${address.version}`, address])).values()];
}
