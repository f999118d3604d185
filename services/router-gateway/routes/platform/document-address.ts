import { type DocumentKind, documentFolders } from '#shared/config/document-kinds.ts';
import type { DocumentAddress, DocumentFolder } from '#shared/config/document-rows.ts';
import { documentId } from '#shared/contracts/documents/document.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { platformLimits } from './limits.ts';

const kindOf = new Map(Object.entries(documentFolders).map(([kind, folder]) => [folder as string, { kind: kind as DocumentKind, folder }]));
const VERSION = /^[1-9][0-9]{0,9}$/;

export interface KindInAddress {
  kind: DocumentKind;
  folder: DocumentFolder;
}

/** @throws `request.not_found` for a kind that there is not */
export function kindInAddress(name: string): KindInAddress {
  const known = kindOf.get(name);
  if (known === undefined) throw new SwitchyardError('request.not_found', `There are documents of these kinds: ${[...kindOf.keys()].join(', ')}`);
  return known;
}

export function isDocumentId(text: string): boolean {
  return documentId.safeParse(text).success;
}

/** Null: no document can have this address. */
export function addressIn(folder: DocumentFolder, { id, version }: { id: string; version: string }): DocumentAddress | null {
  const number = VERSION.test(version) ? Number(version) : 0;
  if (number < 1 || number > platformLimits.version || !isDocumentId(id)) return null;
  return { kind: folder, id, version: number };
}

/** @throws `request.invalid` naming the part of the address */
export function publishableAddress(folder: DocumentFolder, given: { id: string; version: string }): DocumentAddress {
  const address = addressIn(folder, given);
  if (address !== null) return address;
  const isId = isDocumentId(given.id);
  const message = isId ? `version must be a whole number from 1 to ${platformLimits.version}` : 'id must be 1 to 128 letters, digits, hyphens or underscores';
  throw new SwitchyardError('request.invalid', message, { details: { param: isId ? 'version' : 'id' } });
}
