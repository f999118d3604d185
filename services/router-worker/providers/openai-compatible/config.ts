import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';
import { EXTENSIONS } from './extensions.ts';
import { PROFILES, type ProfileName, profileOf } from './profiles.ts';

const [firstProfile = 'generic', ...otherProfiles] = Object.keys(PROFILES) as ProfileName[];

export const openAiCompatibleConfig = z
  .strictObject({
    ...providerIdentity,
    kind: z.literal('openai-compatible'),
    /** The vendor or server, whose differences are known. Absent: the one whose host `base_url` names, or else `generic`. */
    profile: z.enum([firstProfile, ...otherProfiles]).optional(),
    /** Absent: the profile's, if it has one. */
    base_url: httpUrl.optional(),
    /** Of Azure's API: `api-version` of the query. */
    api_version: z
      .string()
      .regex(/^[\w.-]{1,40}$/, 'must be letters, digits, ".", "_" or "-"')
      .optional(),
    /** Absent for upstreams without authentication, such as a local model server. */
    api_key: secretRef.optional(),
    /** Of the API, which few servers have. Absent: those of the profile. */
    extensions: z.array(z.enum(EXTENSIONS)).optional(),
    /** Absent: that of the profile that the block names; if it is not known, requests that deny data collection go elsewhere. */
    data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
  })
  .superRefine(({ profile: name, base_url: baseUrl, api_version: version }, { addIssue }) => {
    const profile = profileOf(name, null);
    if (baseUrl === undefined && profile.baseUrl === null) {
      addIssue({ code: 'custom', path: ['base_url'], message: 'must be set: the profile has none' });
    }
    if (version === undefined && profile.apiVersion === 'required') {
      addIssue({ code: 'custom', path: ['api_version'], message: 'must be set: the profile requires it' });
    }
    if (version !== undefined && profile.apiVersion === 'none') {
      addIssue({ code: 'custom', path: ['api_version'], message: 'must be absent: the profile has no such version' });
    }
  });
