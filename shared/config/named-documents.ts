import type { DocumentReference } from '../contracts/documents/document.ts';
import { quotedName } from '../contracts/printed-name.ts';
import type { Documents } from './bundle-body.ts';
import type { Found, FoundDocuments } from './check-documents.ts';
import { documentFolders } from './document-kinds.ts';
import type { ManifestOutline, Reference } from './manifest-outline.ts';

export type Report = (file: string, path: readonly PropertyKey[], message: string) => void;

export interface Named<Document> {
  file: string;
  document: Document;
}

/** The documents that the manifest names, directly or through another. Documents with errors of their own are left out. */
export type NamedDocuments = { [Kind in keyof Documents]: Named<Documents[Kind][number]>[] };

/** Resolves every `{id, version}`; a dangling one is reported at its place. */
export function namedDocuments(outline: ManifestOutline, found: FoundDocuments, manifestFile: string, report: Report): NamedDocuments {
  const { context, search } = outline;
  const all = <Document>(kind: keyof Documents, files: readonly Found<Document>[], references: readonly Reference[] | null, name: string) =>
    (references ?? []).flatMap((reference, index) =>
      lookUp(reference, files, kind, (message) => report(manifestFile, ['agent_config', 'context', name, index], message)),
    );
  const prompt = (reference: Reference | DocumentReference, file: string, path: readonly PropertyKey[]) =>
    lookUp(reference, found.prompts, 'prompts', (message) => report(file, path, message));

  const routines = all('routines', found.routines, context.routines, 'routines');
  const prompts = [
    ...prompt(context.system_prompt, manifestFile, ['agent_config', 'context', 'system_prompt']),
    ...prompt(search?.prompt ?? null, manifestFile, ['agent_config', 'search', 'prompt']),
    ...routines.flatMap(({ file, document }) =>
      document.kind === 'autonomous' && typeof document.instructions !== 'string' ? prompt(document.instructions, file, ['instructions']) : [],
    ),
  ];
  return {
    // One prompt may have several references.
    prompts: [...new Map(prompts.map((named) => [named.file, named])).values()],
    routines,
    policies: all('policies', found.policies, context.policies, 'policies'),
    glossaries: all('glossaries', found.glossaries, context.glossaries, 'glossaries'),
    macros: all('macros', found.macros, context.macros, 'macros'),
    variable_sets: all('variable_sets', found.variable_sets, context.variables, 'variables'),
  };
}

/** @returns a list of one document; empty when it is missing or invalid, or when the reference is */
function lookUp<Document>(
  reference: Reference,
  files: readonly Found<Document>[],
  kind: keyof Documents,
  report: (message: string) => void,
): Named<Document>[] {
  if (reference === null || reference.id === null || reference.version === null) return [];
  const { id, version } = reference;
  const versions = files.filter((file) => file.id === id);
  const hit = versions.find((file) => file.version === version);
  if (hit !== undefined) return hit.document === null ? [] : [{ file: hit.file, document: hit.document }];
  const others = new Set(versions.flatMap((file) => (file.version === null ? [] : [file.version])));
  const hint = others.size > 0 ? `; there is version ${[...others].join(', ')}` : '';
  report(`there is no ${quotedName(id)} version ${version} among the documents in ${documentFolders[kind]}${hint}`);
  return [];
}
