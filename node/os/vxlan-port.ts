/** Where nodes take each other's pods' packets, wrapped in UDP: VXLAN's own port, and the only one every Windows has. */
export const VXLAN_PORT = 4789;
