import { stat } from 'node:fs/promises';
import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import { openOutbound } from '../http/outbound.ts';
import type { Queryable } from '../storage/database.ts';

import { type DocumentSource, noDocuments } from './document-source.ts';
import { folderSource } from './folder-source.ts';
import { ownSource } from './own-source.ts';
import { foreignPlatformOf } from './platform-address.ts';
import { platformSource } from './platform-source.ts';
import { type Environment, resolveSecret } from './secret-ref.ts';

interface AgentDocumentsOptions {
  /** DOCUMENTS, or the folder beside the manifest. */
  documentsPath: string;
  /** Whether DOCUMENTS is set: the folder is used whatever the manifest names. */
  isFolderGiven: boolean;
  publicBaseUrl: string | null;
  environment: Environment;
  /** Opened where it is needed; null: there is none. */
  database: (() => Promise<Queryable>) | null;
}

/**
 * Where the manifest's documents are: the folder DOCUMENTS; else the platform that the manifest names, if it is another deployment; else the folder beside the
 * manifest, if there is one; else those that were published to this deployment.
 */
export function agentDocuments({ documentsPath, isFolderGiven, publicBaseUrl, environment, database }: AgentDocumentsOptions): DocumentSource {
  return {
    async read(outline) {
      const folder = folderSource(documentsPath);
      if (isFolderGiven || outline === null) return folder.read(outline);
      const baseUrl = foreignPlatformOf(outline.platform?.base_url ?? null, publicBaseUrl);
      if (baseUrl !== null) {
        const [publicKey, secretKey] = [secretIn(outline.platform?.public_key, environment), secretIn(outline.platform?.secret_key, environment)];
        // Reported as missing credentials of the manifest.
        if (publicKey === null || secretKey === null) return { documents: noDocuments, problems: [missingKeys(baseUrl)], warnings: [] };
        return platformSource({ baseUrl, publicKey, secretKey, database, outbound: openOutbound(environment) }).read(outline);
      }
      if (database === null || (await isFolder(documentsPath))) return folder.read(outline);
      return ownSource(database).read(outline);
    },
  };
}

function secretIn(reference: string | null | undefined, environment: Environment): string | null {
  return reference != null && SECRET_REF.test(reference) ? resolveSecret(reference, environment) : null;
}

function missingKeys(baseUrl: string): string {
  return `agent_config.platform: public_key and secret_key are needed to fetch the documents from ${baseUrl}: the environment variables that they name are not set`;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
