import type { Queryable } from '../storage/database.ts';
import { DocumentRows } from './document-rows.ts';
import { type DocumentSource, noDocuments } from './document-source.ts';
import { readReferenced } from './referenced-documents.ts';

/** The documents that were published to this deployment. They were checked then, and are again: by this release. */
export function ownSource(database: () => Promise<Queryable>): DocumentSource {
  return {
    async read(outline) {
      if (outline === null) return { documents: noDocuments, problems: [], warnings: [] };
      const rows = new DocumentRows(await database());
      const documents = await readReferenced(outline, async (address) => {
        const stored = await rows.read(address);
        const file = `document ${address.kind}/${address.id}, version ${address.version}`;
        return stored === null ? null : { file, value: JSON.parse(stored.body), problems: [] };
      });
      return { documents, problems: [], warnings: [] };
    },
  };
}
