import { quotedName } from '../contracts/printed-name.ts';
import type { Documents } from './bundle-body.ts';
import { documentChecks } from './document-kinds.ts';
import type { RawDocument, RawDocuments } from './document-source.ts';
import { type Checked, sentenceOf } from './problems.ts';
import { tolerantNumber, tolerantObject, tolerantText } from './tolerant.ts';

/** A document that was read; null for each part that is invalid. */
export interface Found<Document> {
  file: string;
  id: string | null;
  version: number | null;
  document: Document | null;
}

export type FoundDocuments = { [Kind in keyof Documents]: Found<Documents[Kind][number]>[] };

/** Checks each document by itself, and that no two of a kind have the same id and version. */
export function checkDocuments(documents: RawDocuments): { found: FoundDocuments; problems: string[] } {
  const problems: string[] = [];
  const found: FoundDocuments = {
    prompts: checkKind(documents.prompts, documentChecks.prompts, problems),
    routines: checkKind(documents.routines, documentChecks.routines, problems),
    policies: checkKind(documents.policies, documentChecks.policies, problems),
    glossaries: checkKind(documents.glossaries, documentChecks.glossaries, problems),
    macros: checkKind(documents.macros, documentChecks.macros, problems),
    variable_sets: checkKind(documents.variable_sets, documentChecks.variable_sets, problems),
  };
  return { found, problems };
}

const identity = tolerantObject({ id: tolerantText, version: tolerantNumber });

function checkKind<Document>(all: readonly RawDocument[], checked: (value: unknown) => Checked<Document>, problems: string[]): Found<Document>[] {
  const fileOf = new Map<string, string>();
  return all.map(({ file, value, problems: unreadable }) => {
    const { value: document, problems: wrong } = unreadable.length > 0 ? { value: null, problems: [] } : checked(value);
    problems.push(...[...unreadable, ...wrong.map(sentenceOf)].map((line) => `${file}: ${line}`));
    const { id, version } = identity.parse(value) ?? { id: null, version: null };
    if (id !== null && version !== null) {
      const other = fileOf.get(`${id} ${version}`);
      if (other === undefined) fileOf.set(`${id} ${version}`, file);
      else problems.push(`${file}: has the same id and version as ${other}: ${quotedName(id)}, version ${version}`);
    }
    return { file, id, version, document };
  });
}
