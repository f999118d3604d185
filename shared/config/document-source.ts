import type { DocumentKind } from './document-kinds.ts';
import type { ManifestOutline } from './manifest-outline.ts';

/** A document as its source has it: read, and not checked. */
export interface RawDocument {
  /** Where it is, for messages. */
  file: string;
  value: unknown;
  /** Why it could not be read; `value` has no meaning then. */
  problems: readonly string[];
}

export type RawDocuments = Record<DocumentKind, readonly RawDocument[]>;

export interface DocumentsRead {
  documents: RawDocuments;
  /** Of the source itself: those of documents are theirs. */
  problems: readonly string[];
  /** What is valid but probably not meant, with its place. */
  warnings: readonly string[];
}

/** Where the documents of an agent are: a folder, this deployment's own, or those of another platform. */
export interface DocumentSource {
  /**
   * At least what the manifest refers to, as far as it exists.
   * @param outline null: the manifest has no readable references
   * @throws `config.invalid` when a limit is exceeded, or the source refuses or does not answer
   */
  read(outline: ManifestOutline | null): Promise<DocumentsRead>;
}

export const noDocuments: RawDocuments = { prompts: [], routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] };
