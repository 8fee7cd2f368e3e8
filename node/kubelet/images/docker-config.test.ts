import { expect, test } from "vitest";
import { dockerUsers } from "./docker-config.ts";
import { credentialsFor, parseDockerConfig } from "./keyring.ts";

test.each([
  ['{"auths":{"r.io":{"username":"u","password":"p"}}}', { "r.io": "u:p" }],
  ['{"Auths":{"r.io":{"UserName":"u","PASSWORD":"p"}}}', { "r.io": "u:p" }],
  ['{"auths":{"a.io":{}},"AUTHS":{"b.io":{"username":"u"}}}', { "a.io": ":", "b.io": "u:" }],
  ['{"auths":{"r.io":null,"q.io":{"username":null,"password":"p","auth":null}}}', { "r.io": ":", "q.io": ":p" }],
  ['{"auths":{"r.io":{"auth":"dTpwOnE="},"q.io":{"auth":"dTpwcA"}}}', { "r.io": "u:p:q", "q.io": "u:pp" }],
  ['{"auths":null}', {}], ["null", {}],
])("a docker configuration %s", (text, users) => {
  expect(Object.fromEntries([...dockerUsers(text, { legacy: false })].map(([place, { username, password }]) => [place, `${username}:${password}`]))).toEqual(users);
});

test.each([
  ['{"auths":{"r.io":{"username":1}}}', "json: cannot unmarshal number into Go struct field dockerConfigEntryWithAuth.username of type string"],
  ['{"auths":{"r.io":"u:p"}}', "json: cannot unmarshal string into Go value of type credentialprovider.dockerConfigEntryWithAuth"],
  ['{"auths":[]}', "json: cannot unmarshal array into Go value of type credentialprovider.DockerConfig"],
  ['{"auths":{"r.io":{"auth":"dTp!cA=="}}}', "illegal base64 data at input byte 3"],
  ['{"auths":{"r.io":{"auth":"dTpwc"}}}', "illegal base64 data at input byte 5"],
  ['{"auths":{"r.io":{"auth":"dQ=="}}}', "unable to parse auth field, must be formatted as base64(username:password)"],
])("no docker configuration: %s", (text, why) => {
  expect(() => dockerUsers(text, { legacy: false })).toThrow(why);
});

test.each([
  ["https://r.io", true], ["http://r.io/v2/", true], ["http://r.io/v1/team", true], ["HTTPS://r.io", false], ["you@r.io", true], ["r.io/te%61m", true], ["r.io/team?a=b", true], ["r.io/team#a", true], ["*.*", true],
  ["r?.io", false], ["[r].io", false], ["r.io/other", false], ["r.io/%", false], ["r io", false],
])("credentials for the place %s are those for r.io/team/x: %s", (place, fits) => {
  expect(credentialsFor("r.io/team/x", parseDockerConfig(JSON.stringify({ auths: { [place]: { username: "u", password: "p" } } }))).length === 1).toBe(fits);
});
