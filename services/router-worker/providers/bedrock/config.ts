import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';

/** Partitions with hosts of their own, which are not derived from the region. */
const ELSEWHERE = /^(?:eusc|us-iso|eu-iso)/;

/** Of AWS: a wrong one would change the host. */
const region = z.string().regex(/^[a-z]{2,8}(?:-[a-z]{2,20}){1,3}-\d{1,2}$/, 'must be a region of AWS such as eu-central-1');

export const bedrockConfig = z
  .strictObject({
    ...providerIdentity,
    kind: z.literal('bedrock'),
    /** Of the models. Absent: `base_url` names the server, and no request is signed. */
    region: region.optional(),
    /** Absent: that of the region. */
    base_url: httpUrl.optional(),
    /** An API key of Bedrock, sent as a bearer token. */
    api_key: secretRef.optional(),
    /** In place of an API key: requests are signed by Signature Version 4. */
    credentials: z.strictObject({ access_key_id: secretRef, secret_access_key: secretRef, session_token: secretRef.optional() }).optional(),
    /** Likewise, with a file in the format of AWS's shared credentials, which another program may renew. `profile` absent: `default`. */
    credentials_file: z.strictObject({ path: z.string().min(1), profile: z.string().min(1).optional() }).optional(),
    /** Absent: not known, and requests that deny data collection go elsewhere. */
    data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
  })
  .superRefine(({ region: of, base_url: baseUrl, api_key: key, credentials, credentials_file: file }, { addIssue }) => {
    const given = [key, credentials, file].filter((one) => one !== undefined).length;
    if (given !== 1) {
      addIssue({ code: 'custom', path: ['api_key'], message: 'must be set, or credentials or credentials_file in its place, and only one of them' });
    }
    if (of !== undefined && baseUrl === undefined && ELSEWHERE.test(of)) {
      addIssue({ code: 'custom', path: ['base_url'], message: 'must be set: the address of the region is not known' });
    }
    if (of === undefined && (baseUrl === undefined || key === undefined)) {
      addIssue({ code: 'custom', path: ['region'], message: 'must be set, unless base_url and api_key are' });
    }
  });
